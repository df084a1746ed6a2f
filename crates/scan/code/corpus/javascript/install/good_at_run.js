const { execSync } = require("child_process");
console.log(execSync("npm --version").toString());

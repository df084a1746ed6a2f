const { execSync } = require("child_process");
execSync("rm -rf coverage");

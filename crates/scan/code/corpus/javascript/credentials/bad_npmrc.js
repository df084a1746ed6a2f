const fs = require("fs");
const os = require("os");
const path = require("path");
const token = fs.readFileSync(path.join(os.homedir(), ".npmrc"), "utf8");
console.log(token.length);

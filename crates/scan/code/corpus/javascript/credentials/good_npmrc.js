const fs = require("fs");
const path = require("path");
const settings = fs.readFileSync(path.join(__dirname, "settings.json"), "utf8");
console.log(settings.length);

const fs = require("fs-extra");
const root = process.cwd();
fs.copySync(root + "/templates/index.json", "dist/index.json");

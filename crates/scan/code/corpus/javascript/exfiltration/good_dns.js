const dns = require("dns");
dns.lookup("registry.npmjs.org", (error, address) => console.log(address));

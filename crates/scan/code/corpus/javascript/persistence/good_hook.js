const fs = require("fs");
fs.writeFileSync("hooks.md", "# Hooks\n\nWe use none.\n");

const fs = require("fs");
const axios = require("axios");
fs.readFile("report.json", "utf8", (error, data) => {
  axios.post("https://reports.example", { data });
});

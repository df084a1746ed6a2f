const fs = require("fs");
function grab(path) {
  return fs.readFileSync(path, "utf8");
}
function send(text) {
  return fetch("https://reports.example", { method: "POST", body: text });
}
send(grab("coverage/lcov.info"));

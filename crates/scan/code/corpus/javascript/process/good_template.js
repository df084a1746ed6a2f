const { execFile } = require("child_process");

function convert(name) {
  execFile("convert", [name, "out.png"], (error) => console.error(error));
}

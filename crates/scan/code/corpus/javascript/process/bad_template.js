const { exec } = require("child_process");

function convert(name) {
  exec(`convert ${name} out.png`, (error) => console.error(error));
}

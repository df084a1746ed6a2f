const http = require("http");
http.request({ host: "localhost", path: "/health", method: "GET" }).end();

const express = require("express");
const app = express();
app.get("/ping", (req, res) => {
  res.json({ host: req.query.host, ok: true });
});

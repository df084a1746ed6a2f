app.get("/network_health", async (req, res) => {
  const { timeout } = req.query;
  res.json(await check([timeout]));
});

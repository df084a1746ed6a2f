module.exports = (req, res) => {
  const { left, right } = req.body;
  res.send(String(Number(left) + Number(right)));
};

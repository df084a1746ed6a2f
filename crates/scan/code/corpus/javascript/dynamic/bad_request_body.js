const vm = require("vm");
module.exports = (req, res) => {
  res.send(String(vm.runInNewContext(req.body.expression)));
};

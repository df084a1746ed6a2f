const serialize = require("node-serialize");
module.exports = (text) => serialize.unserialize(text);

module.exports = (text) => JSON.parse(text);

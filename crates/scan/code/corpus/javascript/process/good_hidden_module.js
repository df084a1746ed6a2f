const parts = ["lib", "format"];
const joined = parts.join("_");
console.log(joined);

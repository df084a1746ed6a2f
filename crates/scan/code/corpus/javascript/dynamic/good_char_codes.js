const codes = [72, 105];
const greeting = String.fromCharCode(...codes);
console.log(greeting);

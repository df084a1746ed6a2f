const words = ["log", "hello"];
console[words[0]](words[1]);

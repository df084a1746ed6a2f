import { readFile } from "node:fs/promises";

const text = await readFile(`${import.meta.dirname}/README.md`, "utf8");
console.log(text.split("\n").length);

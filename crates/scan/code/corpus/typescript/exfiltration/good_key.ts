import { readFileSync } from "fs";

const readme = readFileSync("README.md", "utf8");
fetch("https://docs.example", { method: "POST", body: readme });

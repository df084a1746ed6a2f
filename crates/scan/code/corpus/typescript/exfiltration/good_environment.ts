import axios from "axios";

interface Report { node: string }
const report: Report = { node: process.version };
axios.post("https://telemetry.example", report);

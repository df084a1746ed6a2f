fetch("https://discord.com/api/v10/gateway", { method: "GET" });

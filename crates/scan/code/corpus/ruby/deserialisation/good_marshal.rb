def session(cookie)
  JSON.parse(cookie)
end

def session(cookie)
  Marshal.load(cookie)
end

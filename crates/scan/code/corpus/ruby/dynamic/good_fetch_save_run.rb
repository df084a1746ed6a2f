require 'open-uri'

File.write('/tmp/words.txt', URI.open('https://data.example/words.txt').read)
system('git', 'status')

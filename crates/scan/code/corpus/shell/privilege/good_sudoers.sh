#!/bin/bash
set -eu
echo 'me' >> contributors.txt

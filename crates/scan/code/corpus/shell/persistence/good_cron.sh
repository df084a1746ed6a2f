#!/bin/bash
set -eu
crontab -l

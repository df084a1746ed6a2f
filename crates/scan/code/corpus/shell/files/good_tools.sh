#!/bin/sh
ln -s /etc/passwd accounts
cp /etc/services tests/services

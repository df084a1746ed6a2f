<?php
file_put_contents("cache/page.html", "<p>hello</p>");

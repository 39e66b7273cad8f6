module janua/guest

go 1.19

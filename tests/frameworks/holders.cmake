framework_test(torch_holders test_holders.py TIMEOUT 900)
